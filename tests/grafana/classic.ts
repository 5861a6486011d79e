// What a dashboard of config/grafana/dashboards may be: Grafana's own types, as JSON writes them, and no panel of a kind that
// none of them uses.

import type { AnnotationQuery, Dashboard, FieldConfig, FieldConfigSource, Panel, RowPanel } from '@grafana/schema';
import type * as stat from '@grafana/schema/dist/types/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen.d.ts';
import type * as table from '@grafana/schema/dist/types/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen.d.ts';
import type * as timeseries from '@grafana/schema/dist/types/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen.d.ts';

// JSON has the text of a string enum's value, which TypeScript takes for another type.
type Written<T> = T extends string
  ? `${T}`
  : T extends number | boolean | null | undefined
    ? T
    : T extends (infer Item)[]
      ? Written<Item>[]
      : T extends object
        ? { [Key in keyof T]: Written<T[Key]> }
        : T;

// The schema leaves queries to each data source: these are the fields of Prometheus' that we use.
interface Target {
  refId: string;
  datasource: { type: 'prometheus'; uid: string };
  editorMode: 'code';
  expr: string;
  range: boolean;
  instant: boolean;
  legendFormat?: string;
  format?: 'table';
}

interface Annotation extends AnnotationQuery {
  expr?: string;
  step?: string;
  useValueForTime?: boolean;
  titleFormat?: string;
  textFormat?: string;
  tagKeys?: string;
}

interface Chart<Type extends string, Options, Custom>
  extends Omit<Panel, 'type' | 'id' | 'title' | 'description' | 'fieldConfig' | 'options' | 'targets'> {
  type: Type;
  id: number;
  title: string;
  description: string;
  options: Options;
  fieldConfig: Omit<FieldConfigSource, 'defaults'> & {
    defaults: Omit<FieldConfig, 'custom' | 'unit'> & { unit: string; custom?: Custom };
  };
  targets: Target[];
}

type AnyChart =
  | Chart<'timeseries', timeseries.Options, timeseries.FieldConfig>
  | Chart<'stat', stat.Options, never>
  | Chart<'table', table.Options, table.FieldConfig>;

interface Row extends Omit<RowPanel, 'panels'> {
  panels: AnyChart[];
}

export type Classic = Written<
  Omit<Dashboard, 'id' | 'uid' | 'panels' | 'annotations'> & {
    id: null;
    uid: string;
    panels: (AnyChart | Row)[];
    annotations: { list: Annotation[] };
  }
>;
